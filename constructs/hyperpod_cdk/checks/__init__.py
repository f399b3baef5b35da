"""Preflight: finds what would fail a deployment, before it starts. See ``docs/checks.md`` for every check.

``run.preflight`` runs the checks of ``model.REGISTER``, which ask ``answers.Aws``; ``aws.LiveAws`` is the real one.
``requirements.required_quotas`` says what an environment needs without a call to AWS.
"""
