"""Delivers and replays webhooks."""
