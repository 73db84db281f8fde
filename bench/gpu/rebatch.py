"""Rewrites the graph of a model of batch 1 for another batch: inputs, outputs, and shapes that begin with the batch."""
import numpy as np
from onnx import helper as h, numpy_helper as nh

def rebatch(m, B):
    g = m.graph
    del g.value_info[:]
    consts = {t.name: t for t in g.initializer}
    nodes = {n.output[0]: n for n in g.node if n.op_type == "Constant"}
    producers = {n.output[0]: n for n in g.node}
    def value(name):
        if name in consts: return nh.to_array(consts[name])
        if name in nodes: return nh.to_array(nodes[name].attribute[0].t)
        return None
    def replace(node, i, array, tag):
        name = f"{node.name or node.output[0]}.{tag}{i}"
        g.initializer.append(nh.from_array(array, name)); node.input[i] = name
    for i in g.input:
        d = i.type.tensor_type.shape.dim
        if i.name == "pos": continue
        at = 1 if "cache" in i.name else 0
        d[at].ClearField("dim_param"); d[at].dim_value = B
    for o in g.output:
        d = o.type.tensor_type.shape.dim
        at = 1 if o.name in ("k_out", "v_out") else 0
        d[at].ClearField("dim_param"); d[at].dim_value = B
    for n in list(g.node):
        if n.op_type == "Reshape":
            s = value(n.input[1])
            if s is not None and len(s) > 1 and s[0] == 1 and np.prod(s) != 1:
                s = s.copy(); s[0] = B; replace(n, 1, s, "b")
        if n.op_type == "Expand":
            s = value(n.input[1])
            if s is None and n.input[1] in producers and producers[n.input[1]].op_type == "Where": s = value(producers[n.input[1]].input[2])
            if s is not None and len(s) > 1 and s[0] == 1 and np.prod(s) != 1:
                s = s.copy(); s[0] = B; replace(n, 1, s, "b")
        if n.op_type == "Concat":
            for j, x in enumerate(n.input):
                if x in consts and len(consts[x].dims) == 3 and consts[x].dims[0] == 1:
                    name = x + ".expanded"
                    g.initializer.append(nh.from_array(np.array([B] + list(consts[x].dims[1:]), np.int64), x + ".shape"))
                    g.node.insert(0, h.make_node("Expand", [x, x + ".shape"], [name])); n.input[j] = name
    return m
