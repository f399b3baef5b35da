"""What is rendered: the manifests of each kind of job, and the pods that they share."""
