#!/usr/bin/env python3
"""Pipelines of scikit-learn, XGBoost and LightGBM against their own predictions: exported to ONNX, compiled, run,
compared.

    sklearn_models.py KILN [--only NAME ...] [--rows 200] [--keep DIR]

Needs scikit-learn, skl2onnx, xgboost, lightgbm and onnxmltools in the Python that runs it. Classes must be equal;
probabilities and regressions agree within 1e-4 of their range. A row whose class differs is excused only where the
model's own two best scores differ by less than 1e-5 (the exported model computes in single precision). Text vectorizers
must be refused by name. Prints a table; exits 1 if a model is wrong, refused without reason, or a text model is
accepted.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
from sklearn import (calibration, cluster, compose, datasets, decomposition, discriminant_analysis, ensemble, feature_extraction, feature_selection,  # noqa: E402
                     gaussian_process, impute, linear_model, mixture, multiclass, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree)

SEED = 7
make = pipeline.make_pipeline


def classes(count=3, features=8, rows=400, positive=False, seed=SEED):
    x, y = datasets.make_classification(rows, features, n_informative=5, n_redundant=1, n_classes=count, random_state=seed)
    x = x.astype(np.float32)
    return (np.abs(x) if positive else x), y


def numbers(features=6, rows=400, targets=1):
    x, y = datasets.make_regression(rows, features, n_informative=4, n_targets=targets, noise=2, random_state=SEED)
    return x.astype(np.float32), (y / np.abs(y).max()).astype(np.float32)


def categories(rows=400):
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, 5, (rows, 4)).astype(np.int64)
    return x, (x.sum(1) > 8).astype(np.int64)


def with_gaps(data):
    x, y = data
    x = x.copy()
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    return x, y


def texts(data):
    x, y = data
    return x, np.array(["low", "mid", "high", "top"])[y]


C2, C3, R1 = (lambda: classes(2)), classes, numbers
LR = lambda: linear_model.LogisticRegression(max_iter=300)
# name: (estimator, data)
MODELS = {
    "scaler_logistic": (lambda: make(preprocessing.StandardScaler(), LR()), C3),
    "scaler_logistic_binary": (lambda: make(preprocessing.StandardScaler(), LR()), C2),
    "minmax_logistic": (lambda: make(preprocessing.MinMaxScaler(), LR()), C3),
    "maxabs_ridge_classifier": (lambda: make(preprocessing.MaxAbsScaler(), linear_model.RidgeClassifier()), C3),
    "robust_sgd": (lambda: make(preprocessing.RobustScaler(), linear_model.SGDClassifier(loss="log_loss", random_state=SEED)), C3),
    "normalizer_perceptron": (lambda: make(preprocessing.Normalizer(), linear_model.Perceptron(random_state=SEED)), C3),
    "imputer_logistic": (lambda: make(impute.SimpleImputer(), LR()), lambda: with_gaps(classes())),
    "imputer_median_tree": (lambda: make(impute.SimpleImputer(strategy="median"), tree.DecisionTreeClassifier(max_depth=6, random_state=SEED)), lambda: with_gaps(classes())),
    "knn_imputer_linear": (lambda: make(impute.KNNImputer(n_neighbors=3), linear_model.LinearRegression()), lambda: with_gaps(numbers())),
    "onehot_logistic": (lambda: make(preprocessing.OneHotEncoder(handle_unknown="ignore"), LR()), categories),
    "ordinal_tree": (lambda: make(preprocessing.OrdinalEncoder(), tree.DecisionTreeClassifier(random_state=SEED)), categories),
    "columns_mixed": (lambda: make(compose.ColumnTransformer([("scaled", preprocessing.StandardScaler(), [0, 1, 2]), ("kept", "passthrough", [3, 4]), ("binary", preprocessing.Binarizer(), [5])]), LR()), C3),
    "polynomial_ridge": (lambda: make(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), R1),
    "polynomial_interactions": (lambda: make(preprocessing.PolynomialFeatures(3, interaction_only=True), LR()), C3),
    "bins_logistic": (lambda: make(preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), LR()), C3),
    "power_linear": (lambda: make(preprocessing.PowerTransformer(), linear_model.LinearRegression()), R1),
    "identity_function_linear": (lambda: make(preprocessing.FunctionTransformer(), linear_model.LinearRegression()), R1),
    "select_k_best": (lambda: make(feature_selection.SelectKBest(k=4), LR()), C3),
    "variance_threshold": (lambda: make(feature_selection.VarianceThreshold(0.1), LR()), C3),
    "pca_logistic": (lambda: make(decomposition.PCA(4), LR()), C3),
    "pca_whitened_svc": (lambda: make(decomposition.PCA(4, whiten=True), svm.SVC()), C3),
    "svd_logistic": (lambda: make(decomposition.TruncatedSVD(4), LR()), C3),
    "incremental_pca": (lambda: make(decomposition.IncrementalPCA(3), linear_model.LinearRegression()), R1),
    "kernel_pca": (lambda: make(decomposition.KernelPCA(3, kernel="rbf"), LR()), C3),
    "lda": (lambda: discriminant_analysis.LinearDiscriminantAnalysis(), C3),
    "qda": (lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), C3),
    "svc_rbf": (lambda: svm.SVC(), C3),
    "svc_binary": (lambda: svm.SVC(kernel="poly", degree=2, coef0=1.0), C2),
    "svc_probability": (lambda: svm.SVC(probability=True, random_state=SEED), C3),
    "svc_probability_binary": (lambda: svm.SVC(probability=True, random_state=SEED), C2),
    "svc_sigmoid": (lambda: make(preprocessing.StandardScaler(), svm.SVC(kernel="sigmoid")), C3),
    "svc_linear_four": (lambda: svm.SVC(kernel="linear"), lambda: classes(4)),
    "nusvc": (lambda: svm.NuSVC(nu=0.3), C3),
    "linear_svc": (lambda: svm.LinearSVC(), C3),
    "linear_svc_binary": (lambda: svm.LinearSVC(), C2),
    "svr_rbf": (lambda: svm.SVR(), R1),
    "nusvr": (lambda: svm.NuSVR(kernel="poly"), R1),
    "one_class_svm": (lambda: svm.OneClassSVM(nu=0.2), C2),
    "knn_classifier": (lambda: neighbors.KNeighborsClassifier(5), C3),
    "knn_weighted": (lambda: neighbors.KNeighborsClassifier(5, weights="distance"), C3),
    "knn_regressor": (lambda: neighbors.KNeighborsRegressor(4), R1),
    "tree": (lambda: tree.DecisionTreeClassifier(max_depth=8, random_state=SEED), C3),
    "tree_regressor": (lambda: tree.DecisionTreeRegressor(max_depth=7, random_state=SEED), R1),
    "tree_two_targets": (lambda: tree.DecisionTreeRegressor(max_depth=5, random_state=SEED), lambda: numbers(targets=2)),
    "forest": (lambda: ensemble.RandomForestClassifier(60, random_state=SEED), C3),
    "forest_binary": (lambda: ensemble.RandomForestClassifier(40, max_depth=6, random_state=SEED), C2),
    "forest_regressor": (lambda: ensemble.RandomForestRegressor(40, random_state=SEED), R1),
    "extra_trees": (lambda: ensemble.ExtraTreesClassifier(40, random_state=SEED), C3),
    "gradient_boosting": (lambda: ensemble.GradientBoostingClassifier(n_estimators=30, random_state=SEED), C3),
    "gradient_boosting_binary": (lambda: ensemble.GradientBoostingClassifier(n_estimators=30, random_state=SEED), C2),
    "gradient_boosting_regressor": (lambda: ensemble.GradientBoostingRegressor(n_estimators=30, random_state=SEED), R1),
    "hist_boosting": (lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=SEED), C3),
    "hist_boosting_binary": (lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=SEED), C2),
    "hist_boosting_gaps": (lambda: ensemble.HistGradientBoostingRegressor(max_iter=20, random_state=SEED), lambda: with_gaps(numbers())),
    "ada_boost": (lambda: ensemble.AdaBoostClassifier(n_estimators=15, random_state=SEED), C3),
    "ada_boost_regressor": (lambda: ensemble.AdaBoostRegressor(n_estimators=10, random_state=SEED), R1),
    "bagging": (lambda: ensemble.BaggingClassifier(n_estimators=8, random_state=SEED), C3),
    "isolation_forest": (lambda: ensemble.IsolationForest(n_estimators=20, random_state=SEED), C2),
    "voting_soft": (lambda: ensemble.VotingClassifier([("l", LR()), ("t", tree.DecisionTreeClassifier(max_depth=4, random_state=1)), ("n", naive_bayes.GaussianNB())], voting="soft", flatten_transform=False), C3),
    "voting_hard": (lambda: ensemble.VotingClassifier([("l", LR()), ("t", tree.DecisionTreeClassifier(max_depth=4, random_state=1)), ("n", naive_bayes.GaussianNB())], flatten_transform=False), C3),
    "voting_regressor": (lambda: ensemble.VotingRegressor([("l", linear_model.LinearRegression()), ("t", tree.DecisionTreeRegressor(max_depth=4, random_state=1))]), R1),
    "stacking": (lambda: ensemble.StackingClassifier([("t", tree.DecisionTreeClassifier(max_depth=4, random_state=1)), ("n", naive_bayes.GaussianNB())], LR()), C3),
    "stacking_regressor": (lambda: ensemble.StackingRegressor([("r", linear_model.Ridge()), ("t", tree.DecisionTreeRegressor(max_depth=4, random_state=1))], linear_model.LinearRegression()), R1),
    "gaussian_process": (lambda: gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RBF(2.0), alpha=1e-2), lambda: numbers(rows=120)),
    "gaussian_process_classifier": (lambda: gaussian_process.GaussianProcessClassifier(gaussian_process.kernels.RBF(2.0), optimizer=None), lambda: classes(2, rows=120)),
    "gaussian_nb": (lambda: naive_bayes.GaussianNB(), C3),
    "bernoulli_nb": (lambda: naive_bayes.BernoulliNB(binarize=0.2), C3),
    "multinomial_nb": (lambda: naive_bayes.MultinomialNB(), lambda: classes(positive=True)),
    "complement_nb": (lambda: naive_bayes.ComplementNB(), lambda: classes(positive=True)),
    "mlp_classifier": (lambda: neural_network.MLPClassifier((16, 8), max_iter=150, random_state=SEED), C3),
    "mlp_binary_logistic": (lambda: neural_network.MLPClassifier((12,), activation="logistic", max_iter=150, random_state=SEED), C2),
    "mlp_regressor": (lambda: neural_network.MLPRegressor(hidden_layer_sizes=(16,), activation="tanh", max_iter=150, random_state=SEED), R1),
    "calibrated_sigmoid": (lambda: calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=3), C3),
    "calibrated_isotonic": (lambda: calibration.CalibratedClassifierCV(tree.DecisionTreeClassifier(max_depth=5, random_state=1), method="isotonic", cv=3), C2),
    "one_vs_rest": (lambda: multiclass.OneVsRestClassifier(LR()), C3),
    "one_vs_one": (lambda: multiclass.OneVsOneClassifier(LR()), C3),
    "lasso": (lambda: linear_model.Lasso(0.01), R1),
    "elastic_net_two": (lambda: linear_model.ElasticNet(0.01), lambda: numbers(targets=2)),
    "huber": (lambda: linear_model.HuberRegressor(), R1),
    "bayesian_ridge": (lambda: linear_model.BayesianRidge(), R1),
    "theil_sen": (lambda: linear_model.TheilSenRegressor(random_state=SEED), R1),
    "poisson": (lambda: linear_model.PoissonRegressor(), lambda: (numbers()[0], np.abs(numbers()[1]))),
    "kmeans": (lambda: cluster.KMeans(4, n_init=3, random_state=SEED), C3),
    "mini_batch_kmeans": (lambda: cluster.MiniBatchKMeans(4, n_init=3, random_state=SEED), C3),
    "gaussian_mixture": (lambda: mixture.GaussianMixture(3, random_state=SEED), C3),
    "text_labels_forest": (lambda: ensemble.RandomForestClassifier(20, random_state=SEED), lambda: texts(classes())),
    "text_labels_logistic": (lambda: make(preprocessing.StandardScaler(), LR()), lambda: texts(classes())),
    "text_labels_svc": (lambda: svm.SVC(), lambda: texts(classes())),
    "text_labels_knn": (lambda: neighbors.KNeighborsClassifier(5), lambda: texts(classes())),
    "text_labels_mlp": (lambda: neural_network.MLPClassifier((8,), max_iter=100, random_state=SEED), lambda: texts(classes())),
    "feature_union": (lambda: make(pipeline.make_union(decomposition.PCA(2), feature_selection.SelectKBest(k=3)), LR()), C3),
}


def boosted():
    """Models of XGBoost and LightGBM, and the converters that onnxmltools has for them."""
    import lightgbm
    import onnxmltools
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    def convert(with_name, features):
        return lambda model: with_name(model, initial_types=[("X", FloatTensorType([None, features]))], target_opset=15)

    x = lambda f: convert(onnxmltools.convert_xgboost, f)
    g = lambda f: convert(onnxmltools.convert_lightgbm, f)
    quiet = {"verbose": -1}
    return {
        "xgb_three": (lambda: xgboost.XGBClassifier(n_estimators=25, max_depth=4), C3, x(8)),
        "xgb_binary": (lambda: xgboost.XGBClassifier(n_estimators=25, max_depth=4), C2, x(8)),
        "xgb_regressor": (lambda: xgboost.XGBRegressor(n_estimators=25, max_depth=4), R1, x(6)),
        "xgb_gaps": (lambda: xgboost.XGBRegressor(n_estimators=20, max_depth=4), lambda: with_gaps(numbers()), x(6)),
        "xgb_forest": (lambda: xgboost.XGBRFClassifier(n_estimators=20, max_depth=5), C3, x(8)),
        "xgb_poisson": (lambda: xgboost.XGBRegressor(n_estimators=20, objective="count:poisson"), lambda: (numbers()[0], np.round(np.abs(numbers()[1] * 9))), x(6)),
        "lgbm_three": (lambda: lightgbm.LGBMClassifier(n_estimators=20, **quiet), C3, g(8)),
        "lgbm_binary": (lambda: lightgbm.LGBMClassifier(n_estimators=20, **quiet), C2, g(8)),
        "lgbm_regressor": (lambda: lightgbm.LGBMRegressor(n_estimators=20, **quiet), R1, g(6)),
        "lgbm_gaps": (lambda: lightgbm.LGBMRegressor(n_estimators=20, **quiet), lambda: with_gaps(numbers()), g(6)),
        "lgbm_categories": (lambda: lightgbm.LGBMClassifier(n_estimators=20, categorical_feature=[0, 1], min_data_per_group=5, cat_smooth=1, **quiet), lambda: (categories()[0].astype(np.float32), categories()[1]), g(4)),
        "lgbm_dart": (lambda: lightgbm.LGBMClassifier(n_estimators=15, boosting_type="dart", **quiet), C3, g(8)),
        "lgbm_forest": (lambda: lightgbm.LGBMRegressor(n_estimators=15, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **quiet), R1, g(6)),
    }


def text_models():
    """Models that read text: kiln must refuse them by name."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    words = np.array([["a cat sat"], ["a dog ran"], ["the cat ran"], ["dogs sat"]])
    for name, vectorizer in (("tfidf", feature_extraction.text.TfidfVectorizer()), ("count", feature_extraction.text.CountVectorizer())):
        model = make(vectorizer, LR()).fit(words.ravel(), [0, 1, 0, 1])
        yield name, to_onnx(model, initial_types=[("text", StringTensorType([None, 1]))])


def exported(name, model, x):
    from skl2onnx import to_onnx
    zipmap = {} if name.endswith(("binary", "logistic")) else {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") or hasattr(model, "decision_function") and hasattr(model, "classes_") else {}
    try:
        return to_onnx(model, x[:1], options=zipmap or None, target_opset={"": 18, "ai.onnx.ml": 3})
    except (NameError, KeyError, ValueError) as e:  # models without the option
        if "zipmap" not in str(e) and "Option" not in str(e):
            raise
        return to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})


def run(kiln, onnx_model, x, folder, more=()):
    import onnx
    onnx.save(onnx_model, f"{folder}/m.onnx")
    environment = {**os.environ, "KILN_CACHE_DIR": f"{folder}/cache"}
    done = subprocess.run([kiln, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", *more], capture_output=True, text=True, env=environment)
    if done.returncode:
        return None, done.stderr.strip()
    name = onnx_model.graph.input[0].name
    np.save(f"{folder}/x.npy", x)
    out = f"{folder}/out"
    subprocess.run(["rm", "-rf", out], check=True)
    done = subprocess.run([kiln, "run", f"{folder}/m.kiln", "--quiet", "--no-cache", "--input", f"{name}={folder}/x.npy", "--output-dir", out], capture_output=True, text=True, env=environment)
    if done.returncode:
        return None, done.stderr.strip()
    return [np.load(f"{out}/{o.name}.npy") for o in onnx_model.graph.output], ""


def compare(model, x, outputs):
    """(rows whose class differs without excuse, largest error of the scores in parts of their range, or None)"""
    want = model.predict(x)
    got = outputs[0].reshape(want.shape) if outputs[0].size == want.size else outputs[0]
    labelled = hasattr(model, "classes_") or want.dtype.kind in "iu"
    if not labelled:
        scale = max(1e-6, float(np.ptp(want)))
        return 0, float(np.abs(got.astype(np.float64) - want).max()) / scale
    if want.dtype.kind in "UO":
        got = np.asarray(model.classes_)[got] if got.dtype.kind in "iu" else got
    differs = np.asarray(got).astype(want.dtype) != want
    error = None
    scores = model.predict_proba(x) if hasattr(model, "predict_proba") else model.decision_function(x) if hasattr(model, "decision_function") else None
    if scores is not None:
        scores = np.asarray(scores)
        near = np.abs(scores) < 1e-5 if scores.ndim == 1 else np.diff(np.sort(scores, 1)[:, -2:], axis=1)[:, 0] < 1e-5
        differs &= ~near
        if hasattr(model, "predict_proba") and len(outputs) > 1 and outputs[1].shape == scores.shape:
            error = float(np.abs(outputs[1] - scores).max())
    return int(differs.sum()), error


def same_as_onnxruntime(onnx_model, x, outputs):
    """Returns whether the exported model itself differs from the estimator and kiln agrees with the model."""
    import onnxruntime
    try:
        session = onnxruntime.InferenceSession(onnx_model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # the converter writes an operator that onnxruntime does not know
        return False
    want = session.run(None, {onnx_model.graph.input[0].name: x})
    want = [np.array([[row[k] for k in sorted(row)] for row in w]) if isinstance(w, list) and isinstance(w[0], dict) else np.asarray(w) for w in want]
    return all(w.dtype.kind in "UO" or np.allclose(g.astype(np.float64), w, atol=1e-5 * max(1, np.abs(w).max())) for g, w in zip(outputs, want))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--keep")
    o = parser.parse_args()
    jobs = {name: (m, d, None) for name, (m, d) in MODELS.items()}
    jobs.update(boosted())
    counts = {"right": 0, "wrong": 0, "refused": 0, "not exported": 0, "converted wrongly": 0}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (estimator, data, convert) in jobs.items():
            if o.only and name not in o.only:
                continue
            x, y = data()
            train, test = slice(0, len(x) * 2 // 3), x[-o.rows:]
            model = estimator().fit(x[train], y[train])
            try:
                onnx_model = convert(model) if convert else exported(name, model, x)
            except Exception as e:  # the converter's limits are not kiln's
                counts["not exported"] += 1
                print(f"{name:30s} not exported: {str(e).splitlines()[0][:120]}")
                continue
            if o.keep:
                os.makedirs(o.keep, exist_ok=True)
                with open(f"{o.keep}/{name}.onnx", "wb") as f:
                    f.write(onnx_model.SerializeToString())
            outputs, why = run(o.kiln, onnx_model, test, folder)
            if outputs is None:
                counts["refused"] += 1
                bad += 1
                print(f"{name:30s} refused: {why[-200:]}")
                continue
            wrong, error = compare(model, test, outputs)
            right = wrong == 0 and (error is None or error < 1e-4)
            if not right and same_as_onnxruntime(onnx_model, test, outputs):
                counts["converted wrongly"] += 1
                print(f"{name:30s} converted wrongly: onnxruntime's results are kiln's, {wrong} classes differ from the model's own")
                continue
            counts["right" if right else "wrong"] += 1
            bad += not right
            print(f"{name:30s} {'right' if right else 'WRONG'}: {wrong} of {len(test)} classes differ, scores off by {'-' if error is None else f'{error:.1e}'}", flush=True)
        if not o.only:
            for name, onnx_model in text_models():
                _, why = run(o.kiln, onnx_model, np.zeros(1, np.float32), folder)
                refused = "unsupported" in why
                bad += not refused
                print(f"text_{name:25s} {'refused: ' + why[-160:] if refused else 'ACCEPTED'}")
    print(counts)
    return 1 if bad or not counts["right"] else 0


if __name__ == "__main__":
    sys.exit(main())
