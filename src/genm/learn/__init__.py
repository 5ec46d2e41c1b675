"""The fusers: methods that learn one weight per ranker, all under one contract."""

from genm.learn.auto import AutoFuser
from genm.learn.base import EqualFuser, FixedWeights, Fuser, GivenFuser, Step
from genm.learn.batch import BarrierFuser, NewtonFuser
from genm.learn.boost import BoostFuser
from genm.learn.cotrain import CotrainFuser
from genm.learn.exact import ExactFuser
from genm.learn.expected import ExpectedFuser
from genm.learn.gate import GateFit, learn_gate
from genm.learn.groups import GroupFit, learn_groups
from genm.learn.methods import METHODS, Method, find_method, fit, is_method, make_fuser
from genm.learn.online import OnlineFuser, merge_new_judgments, update_model
from genm.model import align_for_model, fuse_with_model

__all__ = [
    "METHODS",
    "AutoFuser",
    "BarrierFuser",
    "BoostFuser",
    "CotrainFuser",
    "EqualFuser",
    "ExactFuser",
    "ExpectedFuser",
    "FixedWeights",
    "Fuser",
    "GateFit",
    "GivenFuser",
    "GroupFit",
    "Method",
    "NewtonFuser",
    "OnlineFuser",
    "Step",
    "align_for_model",
    "find_method",
    "fit",
    "fuse_with_model",
    "is_method",
    "learn_gate",
    "learn_groups",
    "make_fuser",
    "merge_new_judgments",
    "update_model",
]
