"""Published rules and tables of AWS services with their sources, by which the embedded AWS answers and refuses.

No module of the embedded AWS uses the catalog of ``hyperpod_cdk``, so that a rehearsal can detect its errors.
``rehearsal/tests/published`` compares the two and contains the reason for each difference.
"""
