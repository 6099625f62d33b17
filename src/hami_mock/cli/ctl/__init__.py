"""`hami-mock ctl`: the side of the person who asks."""
