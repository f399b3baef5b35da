"""Published rules of AWS services with their sources, by which the embedded AWS refuses requests.

This package does not use the catalog of ``hyperpod_cdk``, so that a rehearsal can detect its errors.
``rehearsal/tests/published`` contains the reasons for differences.
"""
