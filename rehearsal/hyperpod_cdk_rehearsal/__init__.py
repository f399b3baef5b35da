"""Rehearsal: deploys the app for real with the real CDK CLI, against an AWS embedded in a child process."""
