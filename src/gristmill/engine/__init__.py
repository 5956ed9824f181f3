"""The scheduler, without I/O: events in, commands out.

Nothing below this package may know a clock, a thread, a socket, a file or a random number. An executor feeds events in
and carries out the commands, so the scheduler that runs on a laptop is the one that is tested event by event.
"""
