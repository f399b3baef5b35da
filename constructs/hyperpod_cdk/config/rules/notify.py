"""Rules about notifications."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import notifications as facts
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.rules import again_problem, repeated
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.notify import Notify
from hyperpod_cdk.config.rules.book import Book, Problem, warning
from hyperpod_cdk.config.source import DataPath

BOOK = Book()


def sections(environment: Environment) -> Iterator[tuple[DataPath, Notify]]:
    """Yield the section if the file has one."""
    if environment.notify is not None:
        yield ("notify",), environment.notify


@BOOK.alone(sections)
def somebody_is_notified(path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse a section without a recipient: nobody would receive the alarms."""
    if not notify.emails and not any((notify.sns_topic_arn, notify.slack, notify.event_bus_arn)):
        yield Problem(
            path,
            "must name who is notified, got none of emails, sns_topic_arn, slack and event_bus_arn; add emails, such as"
            f" emails: [{facts.EMAIL.example}], or remove notify",
        )


@BOOK.alone(sections)
def notified_once(path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse repeated entries."""
    for key, values in (("emails", notify.emails), ("events", notify.events)):
        for index, first, value in repeated(values):
            yield Problem((*path, key, index), again_problem(value, first, listed=key))


@BOOK.alone(sections)
def thresholds_are_of_published_events(path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse a threshold that no alarm reads."""
    for field, event in notify.unread_thresholds:
        yield Problem((*path, field), f"is used only for {event}, which is not in events; add {event} to events")


@BOOK.each(sections)
def topic_is_in_reach(environment: Environment, path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse a topic of another region, to which no alarm can publish; warn of another account's."""
    arn = notify.sns_topic_arn
    if arn is not None:
        problem = facts.topic_problem(arn, partition=environment.partition, region=environment.region)
        yield from _in_reach(
            environment, (*path, "sns_topic_arn"), arn, problem, of="topic", lets="publish and subscribe"
        )


@BOOK.each(sections)
def budget_publishes_in_its_account(environment: Environment, path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse a budget with a topic of another account."""
    if notify.monthly_budget_usd is None or notify.sns_topic_arn is None:
        return
    problem = facts.budget_topic_problem(notify.sns_topic_arn, account=environment.account)
    if problem:
        yield Problem((*path, "monthly_budget_usd"), problem)


@BOOK.each(sections)
def event_bus_is_in_reach(environment: Environment, path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Refuse a bus of another region, or the account's default one; warn of another account's."""
    arn = notify.event_bus_arn
    if arn is not None:
        problem = facts.event_bus_problem(
            arn, partition=environment.partition, region=environment.region, account=environment.account
        )
        yield from _in_reach(environment, (*path, "event_bus_arn"), arn, problem, of="bus", lets="put events")


def _in_reach(
    environment: Environment, path: DataPath, arn: str, problem: str | None, *, of: str, lets: str
) -> Iterator[Problem]:
    """Refuse what has a problem; warn of another account's, whose policy cannot be read from here."""
    account = arn_parts(arn).account
    if problem:
        yield Problem(path, problem)
    elif account != environment.account:
        yield warning(
            path,
            f"belongs to account {account}; the policy of the {of} must allow account {environment.account} to {lets},"
            f" or nobody is notified; use a {of} of your own if you can",
        )


@BOOK.each(sections)
def budgets_are_in_the_region(environment: Environment, path: DataPath, notify: Notify) -> Iterator[Problem]:
    """Warn of a budget in a region without CloudFormation's type for it; budgets apply to the whole account."""
    if notify.monthly_budget_usd is None:
        return
    doubt = regions.types_warning(environment.region, [facts.BUDGET_TYPE])
    if doubt:
        yield warning(
            (*path, "monthly_budget_usd"),
            f"{doubt}; if the deployment is refused, remove monthly_budget_usd and create the budget in the console of"
            " Billing and Cost Management",
        )
