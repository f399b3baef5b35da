"""The CloudFormation service of the embedded AWS: templates, graph, schemas, stacks, engine and API."""
