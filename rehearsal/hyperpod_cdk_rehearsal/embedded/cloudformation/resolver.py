"""Resolves CloudFormation's intrinsic functions."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.references import SUB_PLACEHOLDER, split_attribute
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError

KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""What CloudFormation writes in a change set for a value that only the deployment makes known."""


class _NoValue:
    """AWS::NoValue: the member that holds it disappears."""


NO_VALUE = _NoValue()


def is_unknown(value: Any) -> bool:
    """Whether a resolved value, or a part of it, is known only after the deployment."""
    if isinstance(value, str):
        return KNOWN_AFTER_APPLY in value
    if isinstance(value, Mapping):
        return any(is_unknown(member) for member in value.values())
    return isinstance(value, list) and any(is_unknown(member) for member in value)


@dataclass
class Scope:
    """Where names get their values from.

    `ref` and `attribute` answer for resources; `import_value` for exports; `availability_zones` for a region's zones.
    """

    template: Template
    parameters: Mapping[str, Any]
    pseudo: Mapping[str, Any]
    ref: Callable[[str], Any]
    attribute: Callable[[str, str], Any]
    import_value: Callable[[str], str]
    availability_zones: Callable[[str], list[str]]
    conditions: dict[str, bool] = field(default_factory=dict)


class Resolver:
    """Resolves values in a scope; a condition is evaluated once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._evaluating: list[str] = []
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.condition,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::If": self._if,
            "Fn::And": lambda argument: all(self._boolean(item) for item in argument),
            "Fn::Or": lambda argument: any(self._boolean(item) for item in argument),
            "Fn::Not": lambda argument: not self._boolean(argument[0]),
            "Fn::Equals": self._equals,
            "Fn::FindInMap": self._find_in_map,
            "Fn::ImportValue": lambda argument: self.scope.import_value(_text(self.resolve(argument))),
            "Fn::Base64": self._base64,
            "Fn::Cidr": self._cidr,
            "Fn::GetAZs": self._get_azs,
            "Fn::Length": lambda argument: len(self._list(argument, "Fn::Length")),
            "Fn::ToJsonString": lambda argument: json.dumps(self.resolve(argument), separators=(",", ":")),
        }

    def resolve(self, value: Any) -> Any:
        """The value with every function in it resolved; NO_VALUE where it disappears."""
        if isinstance(value, list):
            members = (self.resolve(member) for member in value)
            return [member for member in members if member is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            function = self._functions.get(name)
            if function is not None and (name != "Condition" or self._names_condition(argument)):
                return function(argument)
            if name.startswith("Fn::"):
                raise TemplateError(
                    f"Template error: Encountered unsupported function: {name} "
                    f"Supported functions are: [{', '.join(sorted(self._functions))}]"
                )
        resolved = {key: self.resolve(member) for key, member in value.items()}
        return {key: member for key, member in resolved.items() if member is not NO_VALUE}

    def properties(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A resource's properties, resolved."""
        resolved = self.resolve(dict(value))
        return {} if resolved is NO_VALUE else resolved

    def condition(self, name: str) -> bool:
        """The truth of a condition of the template."""
        conditions = self.scope.conditions
        if name not in conditions:
            if name in self._evaluating:
                raise TemplateError(f"Circular dependency between conditions: [{', '.join(self._evaluating)}]")
            if name not in self.scope.template.conditions:
                raise TemplateError(f"Template error: unresolved condition {name}")
            self._evaluating.append(name)
            conditions[name] = self._boolean(self.scope.template.conditions[name])
            self._evaluating.pop()
        return conditions[name]

    def _names_condition(self, argument: Any) -> bool:
        # `Condition` is also an ordinary property name, of IAM statements above all
        return isinstance(argument, str) and argument in self.scope.template.conditions

    def _boolean(self, value: Any) -> bool:
        resolved = self.resolve(value)
        if isinstance(resolved, bool):
            return resolved
        if resolved in ("true", "false"):
            return bool(resolved == "true")
        raise TemplateError(f"Template error: a condition must be true or false, got {resolved!r}")

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        for values in (self.scope.pseudo, self.scope.parameters):
            if name in values:
                return values[name]
        return self.scope.ref(name)

    def _get_att(self, argument: Any) -> Any:
        logical_id, attribute = split_attribute(argument)
        return self.scope.attribute(logical_id, _text(self.resolve(attribute)))

    def _sub(self, argument: Any) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else (argument[0], self.resolve(argument[1]))

        def value_of(name: str) -> str:
            if name in own:
                return _text(own[name])
            logical_id, dot, attribute = name.partition(".")
            return _text(self.scope.attribute(logical_id, attribute) if dot else self._ref(name))

        return SUB_PLACEHOLDER.sub(
            lambda match: f"${{{match['name']}}}" if match["literal"] else value_of(match["name"].strip()), text
        )

    def _join(self, argument: Any) -> str:
        if not isinstance(argument, list) or len(argument) != 2:
            raise TemplateError(
                "Template error: every Fn::Join object requires two parameters, "
                "(1) a string delimiter and (2) a list of strings to be joined or a function that returns a list of "
                "strings (such as Fn::GetAZs) to be joined."
            )
        members = self._list(argument[1], "Fn::Join")
        return _text(self.resolve(argument[0])).join(_text(member) for member in members)

    def _select(self, argument: Any) -> Any:
        index = int(self.resolve(argument[0]))
        members = self.resolve(argument[1])
        if isinstance(members, str) and is_unknown(members):
            return KNOWN_AFTER_APPLY
        if not isinstance(members, list) or not 0 <= index < len(members):
            if is_unknown(members):
                return KNOWN_AFTER_APPLY
            raise TemplateError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return members[index]

    def _split(self, argument: Any) -> list[str]:
        # the mark of what is not known yet holds letters of its own, at which nothing is divided
        text = _text(self.resolve(argument[1])).replace(KNOWN_AFTER_APPLY, "\0")
        return [part.replace("\0", KNOWN_AFTER_APPLY) for part in text.split(_text(self.resolve(argument[0])))]

    def _if(self, argument: Any) -> Any:
        if not isinstance(argument, list) or len(argument) != 3:
            raise TemplateError("Template error: Fn::If requires a list argument with three parameters")
        return self.resolve(argument[1] if self.condition(argument[0]) else argument[2])

    def _equals(self, argument: Any) -> bool:
        left, right = (self.resolve(item) for item in argument)
        scalars = (str, int, float, bool)
        if isinstance(left, scalars) and isinstance(right, scalars):
            return _text(left) == _text(right)
        return bool(left == right)

    def _find_in_map(self, argument: Any) -> Any:
        keys = [_text(self.resolve(item)) for item in argument[:3]]
        found: Any = self.scope.template.mappings
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
            if found is None:
                break
        if found is not None:
            return found
        if len(argument) == 4:
            return self.resolve(argument[3]["DefaultValue"])
        if any(is_unknown(key) for key in keys):
            return KNOWN_AFTER_APPLY
        raise TemplateError(f"Template error: Unable to get mapping for {'::'.join(keys)}")

    def _base64(self, argument: Any) -> str:
        text = _text(self.resolve(argument))
        return text if is_unknown(text) else base64.b64encode(text.encode()).decode()

    def _cidr(self, argument: Any) -> list[str]:
        block, count, *bits = [self.resolve(item) for item in argument]
        if is_unknown(block):
            return [KNOWN_AFTER_APPLY] * int(count)
        network = ipaddress.ip_network(block, strict=False)
        prefix = network.max_prefixlen - int(bits[0] if bits else 8)
        if prefix < network.prefixlen or 2 ** (prefix - network.prefixlen) < int(count):
            raise TemplateError(f"Template error: Fn::Cidr cannot make {count} blocks of /{prefix} from {block}")
        subnets = network.subnets(new_prefix=prefix)
        return [str(next(subnets)) for _ in range(int(count))]

    def _get_azs(self, argument: Any) -> list[str]:
        region = _text(self.resolve(argument)) or str(self.scope.pseudo["AWS::Region"])
        return self.scope.availability_zones(region)

    def _list(self, argument: Any, function: str) -> Sequence[Any]:
        members = self.resolve(argument)
        if isinstance(members, list):
            return members
        if is_unknown(members):
            return [members]
        raise TemplateError(f"Template error: {function} requires a list, got {members!r}")


def _text(value: Any) -> str:
    """A scalar as CloudFormation writes it into text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TemplateError(f"Template error: a text was expected, got {json.dumps(value, default=str)}")
