// Operators of onnxruntime for models with several residual streams (hyper-connections), and for the n-gram embeddings
// and expert routers of the same models.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

std::vector<value> hyper_connection_pre_mix(node& n);
std::vector<value> hyper_connection_post_mix(node& n);
std::vector<value> hyper_connection_low_rank_mix(node& n);
std::vector<value> engram_gate(node& n);
std::vector<value> ngram_hash_mapping(node& n);
std::vector<value> moe_group_router(node& n);

}  // namespace kiln::onnx_import
