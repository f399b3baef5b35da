"""Reads sign-ins outside of policies: credentials, identity providers, IAM Identity Center, certificates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from hyperpod_cdk.catalog import managed_policies
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.statements import items, may_be, text
from hyperpod_cdk.review.rights.views import TOKEN, View
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource


class SignIn(NamedTuple):
    """One way to sign in that either exists or not.

    ``identities`` are those that it gives access to; it is high-risk if one of them is powerful or not in the
    templates; without any, ``is_grave`` decides. It is reported only if both sides have the token in ``needs``.
    """

    key: tuple[str, ...]
    who: str
    what: str
    sentence: str
    resource: Resource
    identities: tuple[Principal, ...] = ()
    is_grave: bool = False
    needs: str = ""


_PROVIDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::IAM::OIDCProvider": ("Url", "ClientIdList", "ThumbprintList"),
    "AWS::IAM::SAMLProvider": ("SamlMetadataDocument", "AddPrivateKey"),
    "AWS::Organizations::Policy": ("Content", "TargetIds", "Type"),
}
"""Properties that decide who gets access; another value gives access to others in all places of trust.

Source: IAM user guide, "Create an OpenID Connect identity provider" and "Create a SAML identity provider".
"""


def sign_ins(view: View) -> Iterator[SignIn]:
    """Yield every way to sign in of one side."""
    for type_, names in _PROVIDERS.items():
        for resource in view.of_type(type_):
            yield from _provider(view, resource, names)
    for type_, read in _READERS.items():
        for resource in view.of_type(type_):
            yield from read(view, resource)


def _access_key(view: View, resource: Resource) -> Iterator[SignIn]:
    properties = view.properties(resource)
    if may_be(properties.get("Status", "Active"), "Active"):
        yield _credential(view, resource, _user(view, properties.get("UserName")), "an access key")


def _login(view: View, resource: Resource) -> Iterator[SignIn]:
    if login := view.properties(resource).get("LoginProfile"):
        found = _credential(view, resource, ("resource", view.token(resource)), "a password for the console")
        # the author of a new password knows it
        password = login.get("Password") if isinstance(login, dict) else login
        yield found._replace(key=(*found.key, json.dumps(password)))


def _trust_anchor(view: View, resource: Resource) -> Iterator[SignIn]:
    properties = view.properties(resource)
    # one that states nothing can be enabled by anyone with the permission, without another change
    source = json.dumps([properties.get("Source"), properties.get("Enabled", False)], sort_keys=True)
    yield _plain(view, resource, source, "holders of certificates", "get roles through IAM Roles Anywhere")


def _profile(view: View, resource: Resource) -> Iterator[SignIn]:
    yield from _of_roles(view, resource, view.properties(resource).get("RoleArns"))


def _pool_roles(view: View, resource: Resource) -> Iterator[SignIn]:
    yield from _of_roles(view, resource, view.properties(resource).get("Roles"))


def _pool(view: View, resource: Resource) -> Iterator[SignIn]:
    if may_be(view.properties(resource).get("AllowUnauthenticatedIdentities"), "true"):
        yield _plain(view, resource, "guests", "anyone, without signing in,", "get a role")


def _provider(view: View, resource: Resource, names: tuple[str, ...]) -> Iterator[SignIn]:
    properties, token, name = view.properties(resource), view.token(resource), view.name(resource)
    for each in names:
        for value in items(properties.get(each)):
            written = words.shown(view, text(value))
            shown = written if len(written) <= _SHOWN else f"another {each}"
            said = f"{name} has {each} {shown}" if shown == written else f"{name} has {shown}"
            yield SignIn(("provider", token, each, text(value)), name, each, said, resource, is_grave=True, needs=token)


_SHOWN: Final = 80


def _credential(view: View, resource: Resource, who: Principal, what: str) -> SignIn:
    name = words.principal(view, who)
    key = ("credential", view.token(resource), what, who[1])
    return SignIn(key, name, what, f"{name} gets {what}", resource, identities=(who,))


def _user(view: View, value: Any) -> Principal:
    name = view.named("AWS::IAM::User", text(value))
    found = TOKEN.fullmatch(name)
    return ("resource", f"${{{found[1]}/{found[2]}}}") if found else ("user", name)


def _permission_set(view: View, resource: Resource) -> Iterator[SignIn]:
    properties, token, name = view.properties(resource), view.token(resource), view.name(resource)
    for arn in items(properties.get("ManagedPolicies")):
        policy = text(arn)
        said = f"anyone who is assigned {name} has policy {words.shown(view, policy.rpartition('/')[2])}"
        is_grave = managed_policies.is_grave(policy)
        yield SignIn(("set", token, policy), name, policy, said, resource, is_grave=is_grave)
    for reference in items(properties.get("CustomerManagedPolicyReferences")):
        policy = text(reference.get("Name")) if isinstance(reference, dict) else text(reference)
        said = f"anyone who is assigned {name} has policy {policy} (not in the templates)"
        yield SignIn(("set", token, policy), name, policy, said, resource, is_grave=True)


def _assignment(view: View, resource: Resource) -> Iterator[SignIn]:
    properties = view.properties(resource)
    kind, who, permission_set, account = (
        words.shown(view, text(properties.get(each)))
        for each in ("PrincipalType", "PrincipalId", "PermissionSetArn", "TargetId")
    )
    name = f"{kind.lower()} {who} of IAM Identity Center"
    said = f"{name} signs in to account {account} with {permission_set}"
    key = ("assignment", kind, who, permission_set, account)
    yield SignIn(key, name, permission_set, said, resource, is_grave=True)


def _plain(view: View, resource: Resource, what: str, who: str, verb: str) -> SignIn:
    said = f"{who} {verb} by {view.name(resource)}"
    return SignIn(("plain", view.token(resource), what), who, verb, said, resource, is_grave=True)


def _of_roles(view: View, resource: Resource, stated: Any) -> Iterator[SignIn]:
    name = view.name(resource)
    values = stated.values() if isinstance(stated, dict) else items(stated)
    for value in values:
        arn = text(value)
        found = TOKEN.fullmatch(arn)
        role: Principal = ("resource", f"${{{found[1]}/{found[2]}}}") if found else ("AWS", arn)
        shown = words.principal(view, role)
        said = f"anyone who signs in through {name} acts as {shown}"
        yield SignIn(("through", view.token(resource), arn), name, shown, said, resource, identities=(role,))


_READERS: Final[Mapping[str, Callable[[View, Resource], Iterator[SignIn]]]] = {
    "AWS::IAM::AccessKey": _access_key,
    "AWS::IAM::User": _login,
    "AWS::SSO::PermissionSet": _permission_set,
    "AWS::SSO::Assignment": _assignment,
    "AWS::RolesAnywhere::TrustAnchor": _trust_anchor,
    "AWS::RolesAnywhere::Profile": _profile,
    "AWS::Cognito::IdentityPool": _pool,
    "AWS::Cognito::IdentityPoolRoleAttachment": _pool_roles,
}
