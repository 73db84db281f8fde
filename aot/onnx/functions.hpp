// Functions that a model defines: the key that identifies a function, and how a call binds its attributes.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

// Domain, name and overload (since IR version 10).
using function_key = std::tuple<std::string, std::string, std::string>;
function_key key_of(const ::onnx::FunctionProto& function);
function_key key_of(const ::onnx::NodeProto& call);

// Returns the domain with "ai.onnx", the long form of the standard domain, replaced by the short form.
std::string standard_domain(const std::string& domain);

// Returns the attributes of a call. Attributes that the call lacks get the function's defaults.
std::vector<::onnx::AttributeProto> call_attributes(const ::onnx::FunctionProto& function,
                                                    const ::onnx::NodeProto& call);

// Replaces references to attributes of the call in a node of the function. If neither the call nor the function has the
// attribute, it is removed.
void bind_attributes(::onnx::NodeProto& proto, const std::vector<::onnx::AttributeProto>& given);

}  // namespace kiln::onnx_import
