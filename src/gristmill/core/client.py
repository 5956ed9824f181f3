"""The clients under the path users know: Ray on this machine, and Ray over the nodes of a Slurm job."""

from gristmill.core.ray_client import RayClient
from gristmill.core.slurm_ray_client import SlurmRayClient

__all__ = ["RayClient", "SlurmRayClient"]
