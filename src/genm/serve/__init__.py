"""The service: fuses lists over HTTP, learns from feedback, and keeps everything that it acknowledged."""
