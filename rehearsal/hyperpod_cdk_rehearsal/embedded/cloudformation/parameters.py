"""Values of a template's parameters: given, previous or default, checked against their declarations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError

_SSM_VALUE = re.compile(r"AWS::SSM::Parameter::Value<(?P<type>.+)>")
_LIST = re.compile(r"CommaDelimitedList|List<.+>")
_NO_ECHO = "****"


@dataclass(frozen=True)
class ParameterValue:
    """One parameter of a stack: the text that was given, and what a Ref yields."""

    key: str
    text: str
    value: Any
    no_echo: bool
    resolved_text: str | None = None

    def described(self) -> dict[str, str]:
        """As DescribeStacks shows it."""
        shown = {"ParameterKey": self.key, "ParameterValue": _NO_ECHO if self.no_echo else self.text}
        if self.resolved_text is not None:
            shown["ResolvedValue"] = self.resolved_text
        return shown


def resolve_parameters(
    template: Template,
    given: Sequence[Mapping[str, Any]],
    previous: Mapping[str, ParameterValue],
    ssm_parameter: Callable[[str], str],
) -> dict[str, ParameterValue]:
    """Every declared parameter's value; raises TemplateError as AWS words it.

    `ssm_parameter` gives the text of a Systems Manager parameter and raises TemplateError where there is none.
    """
    texts: dict[str, str] = {}
    for parameter in given:
        key = parameter["ParameterKey"]
        if parameter.get("UsePreviousValue"):
            if key not in previous:
                raise TemplateError(
                    f"Invalid input for parameter key {key}. Cannot specify usePreviousValue as true "
                    "for a parameter key not in the previous template"
                )
            texts[key] = previous[key].text
        else:
            texts[key] = parameter.get("ParameterValue", "")
    unknown = sorted(set(texts) - set(template.parameters))
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    missing = [
        key for key, declaration in template.parameters.items() if key not in texts and "Default" not in declaration
    ]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    return {
        key: _value(key, declaration, texts.get(key, _text(declaration.get("Default", ""))), ssm_parameter)
        for key, declaration in template.parameters.items()
    }


def _value(key: str, declaration: Mapping[str, Any], text: str, ssm_parameter: Callable[[str], str]) -> ParameterValue:
    declared_type = str(declaration.get("Type", ""))
    no_echo = str(declaration.get("NoEcho", "false")).lower() == "true"
    _check(key, declaration, text)
    ssm = _SSM_VALUE.fullmatch(declared_type)
    if ssm is None:
        return ParameterValue(key, text, _typed(declared_type, text), no_echo)
    resolved = ssm_parameter(text)
    return ParameterValue(key, text, _typed(ssm["type"], resolved), no_echo, resolved)


def _typed(declared_type: str, text: str) -> Any:
    if _LIST.fullmatch(declared_type):
        return [item.strip() for item in text.split(",")] if text else []
    return text


def _check(key: str, declaration: Mapping[str, Any], text: str) -> None:
    explanation = declaration.get("ConstraintDescription")
    for broken in _broken_constraints(key, declaration, text):
        raise TemplateError(f"Parameter {key} failed to satisfy constraint: {explanation}" if explanation else broken)


def _broken_constraints(key: str, declaration: Mapping[str, Any], text: str) -> list[str]:
    broken = []
    declared_type = str(declaration.get("Type", ""))
    items = _typed(declared_type, text)
    values = items if isinstance(items, list) else [items]
    allowed = [_text(value) for value in declaration.get("AllowedValues", [])]
    if allowed and any(value not in allowed for value in values):
        broken.append(f"Parameter '{key}' must be one of AllowedValues")
    pattern = declaration.get("AllowedPattern")
    if pattern and any(not re.fullmatch(pattern, value) for value in values):
        broken.append(f"Parameter '{key}' must match pattern {pattern}")
    if declared_type in ("Number", "List<Number>"):
        broken.extend(_broken_bounds(key, declaration, values))
    if "MinLength" in declaration and len(text) < int(declaration["MinLength"]):
        broken.append(f"Parameter '{key}' must contain at least {declaration['MinLength']} characters")
    if "MaxLength" in declaration and len(text) > int(declaration["MaxLength"]):
        broken.append(f"Parameter '{key}' must contain at most {declaration['MaxLength']} characters")
    return broken


def _broken_bounds(key: str, declaration: Mapping[str, Any], values: Sequence[str]) -> list[str]:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return [f"Parameter '{key}' must be a number."]
    broken = []
    if "MinValue" in declaration and any(number < float(declaration["MinValue"]) for number in numbers):
        broken.append(f"Parameter '{key}' must be a number not less than {declaration['MinValue']}")
    if "MaxValue" in declaration and any(number > float(declaration["MaxValue"]) for number in numbers):
        broken.append(f"Parameter '{key}' must be a number not greater than {declaration['MaxValue']}")
    return broken


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
