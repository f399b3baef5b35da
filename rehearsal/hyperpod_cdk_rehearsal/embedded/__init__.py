"""The embedded AWS: moto's services for state, with our own CloudFormation in front of them."""
