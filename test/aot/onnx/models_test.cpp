// The models of shared/models, where KILN_MODELS_DIR names the folder that fill.py wrote them to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "aot/onnx/import.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

TEST(onnx_models, all_import) {
  const char* folder = std::getenv("KILN_MODELS_DIR");
  if (!folder) GTEST_SKIP() << "skipped: set KILN_MODELS_DIR to the folder of the models (see shared/models/fill.py)";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().string());
    try {
      program p = import_onnx(entry.path());
      p.validate();
      EXPECT_FALSE(p.main().outputs().empty());
      EXPECT_EQ(p.modules().size(), 1u);
      std::cout << entry.path().filename().string() << ": " << p.main().instructions().size() << " instructions\n";
      ++count;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_GE(count, 15);
}

}  // namespace
}  // namespace kiln
