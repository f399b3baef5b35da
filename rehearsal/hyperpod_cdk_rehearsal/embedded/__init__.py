"""The embedded AWS: moto's services for state, and a CloudFormation of our own in front of them."""
