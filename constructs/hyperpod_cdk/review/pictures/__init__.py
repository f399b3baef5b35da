"""The architecture diagram and the Gantt chart, as SVG."""
