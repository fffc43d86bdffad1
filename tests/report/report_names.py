"""Names that a user's table may hold."""

EVIL = "<script>alert('$x_1$')</script>"  # HTML and mathtext alike
