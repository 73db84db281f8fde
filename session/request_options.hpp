// What the C interface asks for, as the options of a session.
#pragma once

#include "runtime/model_source.hpp"
#include "session/session_options.hpp"

namespace kiln {

session_options options_of(const model_request& request);

}  // namespace kiln
