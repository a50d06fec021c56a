"""The statistics of a trial of Advanced Approvals, offline."""
