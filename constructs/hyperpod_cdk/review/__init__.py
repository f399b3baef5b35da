"""What a change does to running nodes, money, quotas and access: two cloud assemblies in, one report out.

Everything is computed from the templates, so that what is reviewed is what is deployed; the environment files only
tell which line caused a change. Nothing here calls AWS but ``deployed`` and ``price_list``, and nothing needs a clock.
"""
