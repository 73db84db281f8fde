#include "aot/onnx/refused_operators.hpp"

#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

// An operator that is refused, and what to do instead. An empty name stands for all operators of the domain.
struct refused_row {
  std::string_view domain, name, advice;
};

constexpr std::string_view search =
    "it runs a search around the decoder inside the model; export the decoder alone and search outside";
constexpr std::string_view packed =
    "it works on tokens without their padding, for one device; optimize the model without packing (remove_padding)";
constexpr std::string_view paged =
    "it keeps its keys in pages that a server manages; export with a cache for each sequence (GroupQueryAttention)";
constexpr std::string_view ordered =
    "its layout belongs to one device; quantize the model with QDQ or QLinear operators";
constexpr std::string_view context = "it holds code for another runtime; export the model without a compiled context";
constexpr std::string_view text =
    "it works on text; run the tokenizer or vectorizer outside, and cut the model behind it "
    "(onnx.utils.extract_model)";

constexpr std::string_view plugin =
    "it is a plugin of TensorRT or of another runtime; export the model for onnxruntime, with the operators of ONNX";

constexpr refused_row rows[] = {
    {microsoft_domain, "BeamSearch", search},
    {microsoft_domain, "GreedySearch", search},
    {microsoft_domain, "Sampling", search},
    {microsoft_domain, "WhisperBeamSearch", search},
    {microsoft_domain, "PackedAttention", packed},
    {microsoft_domain, "PackedMultiHeadAttention", packed},
    {microsoft_domain, "RemovePadding", packed},
    {microsoft_domain, "RestorePadding", packed},
    {microsoft_domain, "SparsePagedAttention", paged},
    {microsoft_domain, "DecoderMaskedSelfAttention", "export the decoder with MultiHeadAttention"},
    {microsoft_domain, "DecoderAttention", "export the decoder with MultiHeadAttention"},
    {microsoft_domain, "LongformerAttention", "export the model without fusing its attention"},
    {microsoft_domain, "QOrderedAttention", ordered},
    {microsoft_domain, "QOrderedGelu", ordered},
    {microsoft_domain, "QOrderedLayerNormalization", ordered},
    {microsoft_domain, "QOrderedLongformerAttention", ordered},
    {microsoft_domain, "QOrderedMatMul", ordered},
    {microsoft_domain, "QuantizeWithOrder", ordered},
    {microsoft_domain, "DequantizeWithOrder", ordered},
    {microsoft_domain, "MatMulFpQ4", "its weights are packed for one processor; quantize with MatMulNBits"},
    {microsoft_domain, "EPContext", context},
    {microsoft_domain, "Snpe", context},
    {microsoft_domain, "Tokenizer", text},
    {microsoft_domain, "WordConvEmbedding", text},
    {microsoft_domain, "MurmurHash3", text},
    {"", "StringNormalizer", text},
    {"", "StringConcat", text},
    {"", "StringSplit", text},
    {"", "RegexFullMatch", text},
    {"", "ImageDecoder",
     "it reads image files; decode them with an image library, and cut the model behind it (onnx.utils.extract_model), "
     "so that it takes pixels"},
    {ml_domain, "DictVectorizer", "it reads maps; give the model a tensor of features"},
    {ml_domain, "CastMap", "it reads maps; give the model a tensor of features"},
    {ml_domain, "CategoryMapper", text},
    {"com.microsoft.nchwc", "",
     "onnxruntime laid its images out for one processor; save the optimized model at the level ORT_ENABLE_EXTENDED"},
    {"ai.onnx.contrib", "", text},
    {"TRT", "", plugin},
    {"trt.plugins", "", plugin},
    {"mmdeploy", "", plugin},
};

}  // namespace

std::string_view advice_about(std::string_view domain, std::string_view name) {
  for (const refused_row& row : rows)
    if (row.domain == domain && (row.name.empty() || row.name == name)) return row.advice;
  return {};
}

}  // namespace kiln::onnx_import
