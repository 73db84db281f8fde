// How a HIP source says which ONNX operator it implements (docs/custom_ops.md). The macros expand to nothing: the compiler reads their
// arguments as they are written, and reports mistakes in them at their place. They may follow each other anywhere outside of functions;
// KILN_OPERATOR begins an operator, all others belong to the one before them.
#pragma once

#define KILN_OPERATOR(domain, name)              // KILN_OPERATOR("my.ops", "Relu6")
#define KILN_INPUT(index, type)                  // only where input `index` has this element type; several operators may share a name
#define KILN_REQUIRE(condition)                  // only where this holds: KILN_REQUIRE(rank(input0) == 4 && mode == "linear")
#define KILN_ATTRIBUTE(name, value)              // an attribute of the node and its default: 6.0 (FLOAT), 3 (INT), "linear" (STRING), list() (INTS).
                                                 // One called opset receives the version of the operator's domain
#define KILN_OUTPUT(index, type, shape)          // KILN_OUTPUT(0, type(input0), same_as(input0)), KILN_OUTPUT(1, int64, dims(dim(input0, 0), k))
#define KILN_SCRATCH(index, bytes)               // memory for this operator's launches, called scratch0, scratch1, ...
#define KILN_LAUNCH(...)                         // kernel, rule, arguments: one launch, in order: KILN_LAUNCH(relu6, per_element(elements(output0)), input0, output0, elements(output0), limit)
#define KILN_SHARED(bytes)                       // dynamic shared memory of the launch before it
