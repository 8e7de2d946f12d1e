"""Results as one self-contained HTML page."""

from gcsr.report.report import folder_report, report

__all__ = ["folder_report", "report"]
