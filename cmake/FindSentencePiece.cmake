# Finds Debian's libsentencepiece-dev and offers it as imported targets:
#   SentencePiece::SentencePiece   what reads models
#   SentencePiece::Trainer         what makes them (tests)
find_path(SentencePiece_INCLUDE_DIR sentencepiece_processor.h)
find_library(SentencePiece_LIBRARY sentencepiece)
find_library(SentencePiece_TRAINER_LIBRARY sentencepiece_train)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SentencePiece
  REQUIRED_VARS SentencePiece_LIBRARY SentencePiece_TRAINER_LIBRARY SentencePiece_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/install, or install libsentencepiece-dev")

if(SentencePiece_FOUND AND NOT TARGET SentencePiece::SentencePiece)
  add_library(SentencePiece::SentencePiece UNKNOWN IMPORTED)
  set_target_properties(SentencePiece::SentencePiece PROPERTIES
    IMPORTED_LOCATION "${SentencePiece_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SentencePiece_INCLUDE_DIR}")
  add_library(SentencePiece::Trainer UNKNOWN IMPORTED)
  set_target_properties(SentencePiece::Trainer PROPERTIES
    IMPORTED_LOCATION "${SentencePiece_TRAINER_LIBRARY}"
    INTERFACE_LINK_LIBRARIES SentencePiece::SentencePiece)
endif()
mark_as_advanced(SentencePiece_INCLUDE_DIR SentencePiece_LIBRARY SentencePiece_TRAINER_LIBRARY)
