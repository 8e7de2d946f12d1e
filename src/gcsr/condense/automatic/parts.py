"""Parts of the automatic mode that can be switched off by name, to see what each is good for."""

from __future__ import annotations

# What goes without each part.
PARTS = {
    "teachers": "only the first teacher is asked",
    "consistent": "the teacher that learns from unlabelled nodes is not asked",
    "tempering": "teachers are as sure of themselves as their networks are",
    "grouping": "nodes are grouped by k-means",
    "soft-labels": "every condensed node has one class",
    "redraws": "the grouping begins once",
    "agreement": "validation accuracy alone decides",
    "matching": "trajectories are not matched",
    "calibration": "experts and students learn at default rates",
    "window": "late epochs of experts are matched from the beginning",
    "class-means": "sampled rows are not held to the means of their classes",
}
