"""Rehearsal: deploys the app with the real CDK CLI to an AWS that is embedded in a child process."""
