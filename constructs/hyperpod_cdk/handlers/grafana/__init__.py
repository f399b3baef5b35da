"""The function behind Custom::HyperPodGrafanaDashboards."""
