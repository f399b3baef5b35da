"""What AWS publishes of its services, restated with its source: by this the embedded AWS refuses.

Nothing here knows the catalog of ``hyperpod_cdk``, so that a rehearsal can prove that one wrong. Where the two differ,
``rehearsal/tests/published`` says why.
"""
