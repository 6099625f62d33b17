"""`hami-mock ctl`: see and change a running agent, over a unix socket."""
