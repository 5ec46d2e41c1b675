"""The fusers: ways to learn one weight per ranker, all under one contract."""

from genm.learn.barrier import BarrierFuser
from genm.learn.base import Fuser, Step
from genm.learn.boost import BoostFuser
from genm.learn.cotrain import CotrainFuser
from genm.learn.exact import ExactFuser
from genm.learn.newton import NewtonFuser
from genm.learn.online import OnlineFuser
from genm.learn.serving import align_for_model, fuse_with_model

__all__ = [
    "BarrierFuser",
    "BoostFuser",
    "CotrainFuser",
    "ExactFuser",
    "Fuser",
    "NewtonFuser",
    "OnlineFuser",
    "Step",
    "align_for_model",
    "fuse_with_model",
]
