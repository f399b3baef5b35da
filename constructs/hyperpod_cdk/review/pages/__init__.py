"""The report as Markdown, as one HTML file, as text and as JSON."""
