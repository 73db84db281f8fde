// Functions that a model defines: how nodes name them, and the attributes that a call binds.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

// Domain, name and overload (IR version 10).
using function_key = std::tuple<std::string, std::string, std::string>;
function_key key_of(const ::onnx::FunctionProto& function);
function_key key_of(const ::onnx::NodeProto& call);

// "ai.onnx" is the long form of the standard domain.
std::string standard_domain(const std::string& domain);

// The attributes of a call: its own, then the function's defaults.
std::vector<::onnx::AttributeProto> call_attributes(const ::onnx::FunctionProto& function,
                                                    const ::onnx::NodeProto& call);

// Replaces references to attributes of the call in a node of the function. If neither the call nor the function has the
// attribute, it is removed.
void bind_attributes(::onnx::NodeProto& proto, const std::vector<::onnx::AttributeProto>& given);

}  // namespace kiln::onnx_import
