"""Description of a data set in the responsible-AI vocabulary of Croissant (mlcommons.org/croissant/RAI/1.0)."""

from __future__ import annotations

from collections.abc import Mapping

RAI: Mapping[str, str | list[str]] = {
    "dataCollection": "Facts about people who have an entry in the source (Wikidata, or the one that the card names), "
    "drawn with a fixed seed; the card says how, and how many men, women and people of other genders.",
    "dataCollectionType": ["Secondary data analysis"],
    "dataCollectionMissingData": "A property that is not recorded is unknown: a value of its own, counted and never "
    "filled in.",
    "dataPreprocessingProtocol": [
        "Facts become prompts through fixed templates; the tense follows the recorded date of death."
    ],
    "dataAnnotationProtocol": "Race and region are derived from recorded ethnic groups through the table of the "
    "SEESAW-CF papers; they are never inferred from a name or a picture. Several tags for a person are allowed.",
    "dataUseCases": [
        "Measuring how an edit of a language model's knowledge changes its answers about other people.",
        "Not for classifying people, not for training: the new targets are false on purpose.",
    ],
    "dataBiases": [
        "People with an entry in the source are not a sample of people: well-documented times, places and professions "
        "are over-represented, and groups are recorded for some people only.",
        "The categories are those of the papers: coarse, contested and bound to time and place.",
    ],
    "dataLimitations": [
        "Numbers describe these prompts and people, not a use of a model.",
        "Facts are as the source had them when they were drawn.",
    ],
    "dataSocialImpact": "Makes side effects of model editing on groups of people visible. Labels could be misread as "
    "statements about who somebody is; the card says what they are not.",
    "personalSensitiveInformation": ["Gender", "Race or ethnicity", "Geography", "Names of people with an entry"],
    "dataReleaseMaintenancePlan": "Versions are tagged and never change; a correction is a new version with an entry "
    "in CHANGELOG.md.",
}
"""Property -> what is true of every data set that the builder makes; numbers are in the card."""
