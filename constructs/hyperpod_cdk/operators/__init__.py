"""SageMaker's operators as EKS add-ons: training, inference, observability, spaces."""
