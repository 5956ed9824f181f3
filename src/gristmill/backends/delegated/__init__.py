"""What executors share that let another engine schedule: the worker's side, the books on the way, the driver's side.

The other engine (Ray Data, Cosmos-Xenna) decides when and where a task runs, and may run it twice. Everything a user
relies on is kept apart from it: workers report every finished task to a registrar, which counts it once; the driver
commits a source partition when everything that came of it has been reported.
"""
