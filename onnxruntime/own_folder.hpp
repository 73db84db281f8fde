// Where the plug-in lies: Kiln's libraries and compiler are looked for beside it.
#pragma once

#include <string>

namespace kiln::ort {

// The folder of this library.
std::string own_folder();

}  // namespace kiln::ort
