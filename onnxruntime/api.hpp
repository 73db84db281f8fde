// ONNX Runtime's functions as C++: what they return as a status is thrown here, and what is thrown becomes a status
// where ONNX Runtime calls us.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::ort {

// The oldest interface that has execution providers as plug-ins. Every later version has it, too.
inline constexpr std::uint32_t api_version = 23;

struct functions {
  const OrtApi* api = nullptr;
  const OrtEpApi* ep = nullptr;
  // Whether a fused node takes what only the bodies of its nodes read. Before ONNX Runtime 1.27 it does not.
  bool fused_nodes_take_captured = true;
};
// Set once, when ONNX Runtime loads the plug-in.
functions& runtime();

// A status that ONNX Runtime returned.
struct failure : std::runtime_error {
  failure(OrtErrorCode c, const std::string& text) : std::runtime_error(text), code(c) {}
  OrtErrorCode code;
};

inline void require(OrtStatus* status) {
  if (!status) return;
  const OrtApi& api = *runtime().api;
  const failure f(api.GetErrorCode(status), api.GetErrorMessage(status));
  api.ReleaseStatus(status);
  throw f;
}

// Runs `work` for a function that ONNX Runtime calls.
template <class Work>
OrtStatus* guarded(Work&& work) noexcept {
  try {
    work();
    return nullptr;
  } catch (const failure& f) {
    return runtime().api->CreateStatus(f.code, f.what());
  } catch (const std::exception& e) {
    return runtime().api->CreateStatus(ORT_FAIL, e.what());
  } catch (...) {
    return runtime().api->CreateStatus(ORT_FAIL, "kiln: an unknown exception");
  }
}

// Lists whose length one function gives and whose elements another.
template <class Element, class Of, class Count, class Get>
std::vector<Element> list(const Of* of, Count count, Get get) {
  std::size_t n = 0;
  require((runtime().api->*count)(of, &n));
  std::vector<Element> result(n);
  if (n) require((runtime().api->*get)(of, result.data(), n));
  return result;
}

template <class Of, class Get>
std::string text(const Of* of, Get get) {
  const char* found = nullptr;
  require((runtime().api->*get)(of, &found));
  return found ? found : "";
}

// A missing optional input or output is null.
inline std::vector<const OrtValueInfo*> inputs_of(const OrtNode* n) {
  return list<const OrtValueInfo*>(n, &OrtApi::Node_GetNumInputs, &OrtApi::Node_GetInputs);
}
inline std::vector<const OrtValueInfo*> outputs_of(const OrtNode* n) {
  return list<const OrtValueInfo*>(n, &OrtApi::Node_GetNumOutputs, &OrtApi::Node_GetOutputs);
}
// Returns the values that the bodies of a node read from outside.
inline std::vector<const OrtValueInfo*> captured_by(const OrtNode* n) {
  return list<const OrtValueInfo*>(n, &OrtApi::Node_GetNumImplicitInputs, &OrtApi::Node_GetImplicitInputs);
}
inline std::string name_of(const OrtValueInfo* v) { return v ? text(v, &OrtApi::GetValueInfoName) : ""; }
inline std::string name_of(const OrtNode* n) { return text(n, &OrtApi::Node_GetName); }
inline std::string operator_of(const OrtNode* n) { return text(n, &OrtApi::Node_GetOperatorType); }
inline std::string domain_of(const OrtNode* n) { return text(n, &OrtApi::Node_GetDomain); }
inline bool is_constant(const OrtValueInfo* v) {
  bool constant = false;
  require(runtime().api->ValueInfo_IsConstantInitializer(v, &constant));
  return constant;
}

// Null where ONNX Runtime does not know the type.
inline const OrtTypeInfo* type_info(const OrtValueInfo* v) {
  const OrtTypeInfo* type = nullptr;
  require(runtime().api->GetValueInfoTypeInfo(v, &type));
  return type;
}
inline ONNXType kind_of(const OrtTypeInfo* type) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  if (type) require(runtime().api->GetOnnxTypeFromTypeInfo(type, &kind));
  return kind;
}
// UNDEFINED if it is no tensor, or nobody knows.
inline ONNXTensorElementDataType element_type_of(const OrtValueInfo* v) {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const OrtTypeInfo* type = v ? type_info(v) : nullptr;
  if (kind_of(type) != ONNX_TYPE_TENSOR) return element;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  require(runtime().api->CastTypeInfoToTensorInfo(type, &tensor));
  require(runtime().api->GetTensorElementType(tensor, &element));
  return element;
}
struct type_info_release {
  void operator()(OrtTypeInfo* type) const { runtime().api->ReleaseTypeInfo(type); }
};
using owned_type_info = std::unique_ptr<OrtTypeInfo, type_info_release>;
// The type of a sequence's elements; null if it is no sequence.
inline owned_type_info element_of(const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_SEQUENCE) return nullptr;
  const OrtSequenceTypeInfo* sequence = nullptr;
  OrtTypeInfo* element = nullptr;
  require(runtime().api->CastTypeInfoToSequenceTypeInfo(type, &sequence));
  require(runtime().api->GetSequenceElementType(sequence, &element));
  return owned_type_info(element);
}

}  // namespace kiln::ort
