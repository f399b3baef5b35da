"""CloudFormation templates as they are read: assembly, values, groups, and the rules that judge them."""
