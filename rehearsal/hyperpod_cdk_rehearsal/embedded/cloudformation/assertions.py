"""The Rules section: assertions over the parameters, evaluated before anything is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import Resolver
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import TemplateError


def check_rules(resolver: Resolver) -> None:
    """Raise TemplateError with the description of every assertion that fails.

    The wording is ours: AWS documents that the description is shown, but not the rest of the message.
    """
    failed = []
    for name, rule in resolver.scope.template.rules.items():
        if "RuleCondition" in rule and not _holds(resolver, rule["RuleCondition"]):
            continue
        for assertion in rule.get("Assertions", []):
            if not _holds(resolver, assertion["Assert"]):
                description = assertion.get("AssertDescription", "assertion failed")
                failed.append(f"Rule {name}: {description}")
    if failed:
        raise TemplateError(f"Template validation error: {'; '.join(failed)}")


def _holds(resolver: Resolver, expression: Any) -> bool:
    if not isinstance(expression, dict) or len(expression) != 1:
        raise TemplateError(f"Template format error: a rule needs one rule-specific function, got {expression!r}")
    name, argument = next(iter(expression.items()))
    function = _FUNCTIONS.get(name)
    if function is None:
        raise TemplateError(f"Template format error: {name} is not a rule-specific intrinsic function")
    return function(resolver, argument)


def _values(resolver: Resolver, argument: Any) -> list[Any]:
    if isinstance(argument, dict) and "Fn::RefAll" in argument:
        return _all_of_type(resolver, argument["Fn::RefAll"])
    resolved = resolver.resolve(argument)
    return resolved if isinstance(resolved, list) else [resolved]


def _all_of_type(resolver: Resolver, parameter_type: str) -> list[Any]:
    scope = resolver.scope
    return [
        scope.parameters[name]
        for name, declaration in scope.template.parameters.items()
        if declaration["Type"] == parameter_type
    ]


def _contains(resolver: Resolver, argument: Any) -> bool:
    allowed = _values(resolver, argument[0])
    return all(value in allowed for value in _values(resolver, argument[1]))


def _each_equals(resolver: Resolver, argument: Any) -> bool:
    wanted = resolver.resolve(argument[1])
    return all(value == wanted for value in _values(resolver, argument[0]))


def _each_in(resolver: Resolver, argument: Any) -> bool:
    allowed = _values(resolver, argument[1])
    return all(value in allowed for value in _values(resolver, argument[0]))


_FUNCTIONS: dict[str, Callable[[Resolver, Any], bool]] = {
    "Fn::And": lambda resolver, argument: all(_holds(resolver, item) for item in argument),
    "Fn::Or": lambda resolver, argument: any(_holds(resolver, item) for item in argument),
    "Fn::Not": lambda resolver, argument: not _holds(resolver, argument[0]),
    "Fn::Equals": lambda resolver, argument: bool(resolver.resolve({"Fn::Equals": argument})),
    "Fn::Contains": _contains,
    "Fn::EachMemberEquals": _each_equals,
    "Fn::EachMemberIn": _each_in,
}
