#include "tests/layering/layering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace vcpusim::layering {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Layering, ThisProjectKeepsToItsLayers) { EXPECT_THAT(violations(VCPUSIM_SOURCE_DIR), IsEmpty()); }

TEST(Layering, ThisProjectIsRead) {
  // Nothing is found in an empty folder either.
  for (const char* layer : {"sim", "models", "scenarios", "tools"}) {
    EXPECT_TRUE(fs::is_directory(fs::path(VCPUSIM_SOURCE_DIR) / layer)) << layer;
  }
}

// A source tree of a single file, in a folder of its own.
class LayeringOf : public testing::Test {
 protected:
  LayeringOf() { fs::remove_all(root_); }
  ~LayeringOf() override { fs::remove_all(root_); }

  std::vector<std::string> file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return violations(root_);
  }

 private:
  fs::path root_ = fs::path(testing::TempDir()) /
                   (std::string("vcpusim_layering_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(LayeringOf, SimMustNotUseModels) {
  EXPECT_THAT(file("sim/a.h", "#pragma once\n#include \"models/config.h\"\n"),
              ElementsAre("sim/a.h:2: sim must not use models/config.h"));
}

TEST_F(LayeringOf, ModelsMustNotUseScenarios) {
  EXPECT_THAT(file("models/locks/a.cpp", "#include <vector>\n#  include <scenarios/loader.h>  // sic\n"),
              ElementsAre("models/locks/a.cpp:2: models must not use scenarios/loader.h"));
}

TEST_F(LayeringOf, ScenariosMustNotUseTools) {
  EXPECT_THAT(file("scenarios/a.cpp", "#include \"tools/vcpusim/table.h\"\n"),
              ElementsAre("scenarios/a.cpp:1: scenarios must not use tools/vcpusim/table.h"));
}

TEST_F(LayeringOf, NobodyUsesTests) {
  EXPECT_THAT(file("tools/a.cpp", "#include \"tests/support/builder.h\"\n"),
              ElementsAre("tools/a.cpp:1: tools must not use tests/support/builder.h"));
}

TEST_F(LayeringOf, ModelsSeeNeitherJsonNorFilesNorTheTerminal) {
  EXPECT_THAT(
      file("models/a.cpp", "#include <nlohmann/json.hpp>\n#include <fstream>\n#include <iostream>\n"),
      ElementsAre("models/a.cpp:1: models must not see <nlohmann/json.hpp>",
                  "models/a.cpp:2: models must not see <fstream>", "models/a.cpp:3: models must not see <iostream>"));
}

TEST_F(LayeringOf, SimSeesNoJsonEither) {
  EXPECT_THAT(file("sim/a.cpp", "#include <valijson/schema.hpp>\n"),
              ElementsAre("sim/a.cpp:1: sim must not see <valijson/schema.hpp>"));
}

TEST_F(LayeringOf, InstalledHeadersNeedNoOtherLibrary) {
  EXPECT_THAT(file("sim/a.h", "#include <boost/accumulators/accumulators.hpp>\n"),
              ElementsAre("sim/a.h:1: a header of sim must not need <boost/accumulators/accumulators.hpp>"));
  EXPECT_THAT(file("sim/a.h", ""), IsEmpty());
  EXPECT_THAT(file("sim/a.cpp", "#include <boost/accumulators/accumulators.hpp>\n"), IsEmpty());
}

TEST_F(LayeringOf, PathsBeginAtTheRoot) {
  EXPECT_THAT(file("sim/a.cpp", "#include \"a.h\"\n#include \"../models/b.h\"\n"),
              ElementsAre("sim/a.cpp:1: \"a.h\" is not a path from the root of the project",
                          "sim/a.cpp:2: \"../models/b.h\" is not a path from the root of the project"));
}

TEST_F(LayeringOf, TheRightWayIsFine) {
  EXPECT_THAT(file("tools/a.cpp", "#include \"scenarios/loader.h\"\n#include \"sim/time.h\"\n#include <iostream>\n"),
              IsEmpty());
  EXPECT_THAT(file("models/a.cpp", "#include \"sim/time.h\"\n#include \"models/config.h\"\n#include \"locks.def\"\n"),
              IsEmpty());
}

}  // namespace
}  // namespace vcpusim::layering
