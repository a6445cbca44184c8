"""Render results: text, JSON, HTML, CI formats, Elle's EDN, and pictures."""
