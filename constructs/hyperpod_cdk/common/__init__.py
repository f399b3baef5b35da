"""What the constructs of every room use: keys, Lambda functions, retention, reasons for cdk-nag."""
