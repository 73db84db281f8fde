"""The ai.onnx.ml domain against onnxruntime."""
import unittest

import numpy as np

import kiln_case
from operator_case import OperatorCase

rng = np.random.default_rng(9)
ML = "ai.onnx.ml"


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


class MachineLearning(OperatorCase):
    def test_linear(self):
        x = ("x", normal(6, 4))
        self.check("LinearRegressor", [x], domain=ML, coefficients=normal(8).tolist(), intercepts=[0.5, -1.0], targets=2)
        for kind in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
            self.check("LinearClassifier", [x], ["label", "y"], domain=ML, coefficients=normal(12).tolist(), intercepts=[0.5, -1.0, 0.1], classlabels_ints=[5, 7, 9], post_transform=kind)
        for kind in ("NONE", "LOGISTIC"):
            self.check("LinearClassifier", [x], ["label", "y"], domain=ML, coefficients=normal(8).tolist(), intercepts=[0.5, -0.5], classlabels_ints=[0, 1], post_transform=kind)
            self.check("LinearClassifier", [x], ["label", "y"], domain=ML, coefficients=normal(4).tolist(), intercepts=[0.1], classlabels_ints=[0, 1], post_transform=kind)

    def test_columns(self):
        x = ("x", normal(6, 4))
        for norm in ("MAX", "L1", "L2"):
            self.check("Normalizer", [("x", np.abs(normal(6, 4)))], domain=ML, norm=norm)
        self.check("Scaler", [x], domain=ML, offset=normal(4).tolist(), scale=normal(4).tolist())
        self.check("Scaler", [x], domain=ML, offset=[0.5], scale=[2.0])
        self.check("ArrayFeatureExtractor", [x, ("i", np.array([2, 0]))], domain=ML, constants=["i"])
        self.check("ArrayFeatureExtractor", [("x", np.array([5, 6, 7])), ("i", np.array([[2, 0, 1]]))], domain=ML)
        self.check("Binarizer", [x], domain=ML, threshold=0.2)
        with_gaps = normal(6, 4)
        with_gaps[1, 2] = np.nan
        self.check("Imputer", [("x", with_gaps)], domain=ML, imputed_value_floats=normal(4).tolist(), replaced_value_float=float("nan"))
        self.check("FeatureVectorizer", [x, ("z", normal(6, 2))], domain=ML, inputdimensions=[4, 2])
        self.check("OneHotEncoder", [("x", np.array([3, 9, 5, 3]))], domain=ML, cats_int64s=[3, 5, 9], zeros=1)

    def test_label_encoder(self):
        x = np.array([3, 9, 5, 4, 3])
        self.check("LabelEncoder", [("x", x)], domain=ML, keys_int64s=[3, 5, 9], values_floats=[0.5, 1.5, -2.0], default_float=7.0)
        self.check("LabelEncoder", [("x", x.reshape(5, 1))], domain=ML, keys_int64s=[3, 5, 9], values_int64s=[1, 2, 3])
        self.check("LabelEncoder", [("x", np.array([0.5, np.nan, 2.0], np.float32))], domain=ML, keys_floats=[0.5, 3.0], values_int64s=[4, 6], default_int64=-3)

    def test_support_vectors(self):
        x, count = ("x", normal(6, 4)), [3, 2, 4]
        for kind, parameters in (("RBF", [0.3, 0.0, 3.0]), ("POLY", [0.5, 1.0, 2.0]), ("LINEAR", [1.0, 0.0, 0.0]), ("SIGMOID", [0.2, 0.1, 0.0])):
            common = {"domain": ML, "kernel_type": kind, "kernel_params": parameters}
            for counts in (count, count[:2]):
                vectors, pairs = sum(counts), len(counts) * (len(counts) - 1) // 2
                machine = {"support_vectors": normal(vectors * 4).tolist(), "coefficients": normal((len(counts) - 1) * vectors).tolist(), "rho": normal(pairs).tolist(), "vectors_per_class": counts,
                           "classlabels_ints": list(range(3, 3 + len(counts)))}
                self.check("SVMClassifier", [x], ["label", "y"], **common, **machine)
                self.check("SVMClassifier", [x], ["label", "y"], **common, **machine, prob_a=(-np.abs(normal(pairs))).tolist(), prob_b=normal(pairs).tolist())
            self.check("SVMRegressor", [x], **common, n_supports=5, support_vectors=normal(20).tolist(), coefficients=normal(5).tolist(), rho=[0.2])
            self.check("SVMRegressor", [x], **common, n_supports=5, support_vectors=normal(20).tolist(), coefficients=normal(5).tolist(), rho=[0.2], one_class=1)

    def trees(self, count, depth, features, mode):
        """Full trees of random splits, pruned at random."""
        nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
        ends = []
        for tree in range(count):
            next_id = [0]

            def grow(level):
                me = next_id[0]
                next_id[0] += 1
                leaf = level == depth or (level > 0 and rng.random() < 0.3)
                at = len(nodes["nodeids"])
                for key, v in (("treeids", tree), ("nodeids", me), ("featureids", int(rng.integers(features))), ("modes", "LEAF" if leaf else mode), ("values", float(rng.standard_normal())),
                               ("truenodeids", 0), ("falsenodeids", 0), ("missing_value_tracks_true", int(rng.integers(2)))):
                    nodes[key].append(v)
                if leaf:
                    ends.append((tree, me))
                else:
                    nodes["truenodeids"][at] = grow(level + 1)
                    nodes["falsenodeids"][at] = grow(level + 1)
                return me

            grow(0)
        return {"nodes_" + k: v for k, v in nodes.items()}, ends

    def weights(self, prefix, ends, ids, positive=False):
        w = rng.standard_normal(len(ends) * len(ids))
        return {f"{prefix}_treeids": [t for t, _ in ends for _ in ids], f"{prefix}_nodeids": [n for _, n in ends for _ in ids], f"{prefix}_ids": list(ids) * len(ends),
                f"{prefix}_weights": [float(v) for v in (np.abs(w) / 9 if positive else w)]}

    def test_trees(self):
        x = normal(9, 5)
        x[3, 2] = np.nan
        for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
            nodes, ends = self.trees(3, 4, 5, mode)
            self.check("TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=2, **nodes, **self.weights("target", ends, [0, 1]), base_values=[0.5, -1.0])
        nodes, ends = self.trees(4, 3, 5, "BRANCH_LEQ")
        for how in ("SUM", "AVERAGE", "MIN", "MAX"):
            self.check("TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=1, aggregate_function=how, **nodes, **self.weights("target", ends, [0]))
            # Several weights of a leaf for one target: the first one counts if there is one target, else their sum.
            self.check("TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=1, aggregate_function=how, **nodes, **self.weights("target", ends, [0, 0, 0]))
        self.check("TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=2, **nodes, **self.weights("target", ends, [0, 0, 1]))
        for kind in ("NONE", "SOFTMAX", "LOGISTIC"):
            self.check("TreeEnsembleClassifier", [("x", x)], ["label", "y"], domain=ML, **nodes, **self.weights("class", ends, [0, 1, 2]), classlabels_int64s=[4, 5, 6], post_transform=kind)
        for kind, positive, one in (("NONE", True, 0), ("NONE", False, 0), ("LOGISTIC", False, 0), ("SOFTMAX", True, 0), ("NONE", True, 1), ("NONE", False, 1), ("LOGISTIC", False, 1)):
            self.check("TreeEnsembleClassifier", [("x", x)], ["label", "y"], domain=ML, **nodes, **self.weights("class", ends, [one], positive), classlabels_int64s=[0, 1], post_transform=kind,
                       base_values=[0.125])

    def test_nodes_with_several_parents(self):
        """A set of categories as LightGBM's converter writes it: comparisons that lead to one node."""
        nodes = {"nodes_treeids": [0] * 6, "nodes_nodeids": [0, 1, 2, 3, 4, 5], "nodes_featureids": [0, 1, 0, 0, 0, 0], "nodes_modes": ["BRANCH_EQ", "BRANCH_LEQ", "BRANCH_EQ", "LEAF", "LEAF", "LEAF"],
                 "nodes_values": [1.0, 0.0, 3.0, 0.0, 0.0, 0.0], "nodes_truenodeids": [1, 4, 1, 0, 0, 0], "nodes_falsenodeids": [2, 5, 3, 0, 0, 0]}
        x = np.array([[1, -1], [1, 2], [2, -1], [2, 2], [3, -1], [3, 2]], np.float32)
        self.check("TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=1, **nodes, **self.weights("target", [(0, 3), (0, 4), (0, 5)], [0]))
        for true_nodes in ([1, 0, 1, 0, 0, 0], [1, 2, 1, 0, 0, 0]):  # around the root, and below it
            circle = {**nodes, "nodes_truenodeids": true_nodes}
            self.refused("below itself", "TreeEnsembleRegressor", [("x", x)], domain=ML, n_targets=1, **circle, **self.weights("target", [(0, 3), (0, 4), (0, 5)], [0]))


if __name__ == "__main__":
    kiln_case.main()
