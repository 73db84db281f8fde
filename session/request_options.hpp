// Converts the options of the C interface to those of a session.
#pragma once

#include "runtime/model_source.hpp"
#include "session/session_options.hpp"

namespace kiln {

session_options options_of(const model_request& request);

}  // namespace kiln
