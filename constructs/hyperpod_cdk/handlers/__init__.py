"""Code that runs in Lambda: standard library and boto3 only. Preflight shares the quota gate's comparison with it."""
