"""Quality, domain and type of content: DeBERTa with a linear layer on its first token, one label for each document."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.stages.text.classifiers.base import Label, LabelClassifier

# As the models' config files have them, in this order.
DOMAINS = (
    "Adult",
    "Arts_and_Entertainment",
    "Autos_and_Vehicles",
    "Beauty_and_Fitness",
    "Books_and_Literature",
    "Business_and_Industrial",
    "Computers_and_Electronics",
    "Finance",
    "Food_and_Drink",
    "Games",
    "Health",
    "Hobbies_and_Leisure",
    "Home_and_Garden",
    "Internet_and_Telecom",
    "Jobs_and_Education",
    "Law_and_Government",
    "News",
    "Online_Communities",
    "People_and_Society",
    "Pets_and_Animals",
    "Real_Estate",
    "Science",
    "Sensitive_Subjects",
    "Shopping",
    "Sports",
    "Travel_and_Transportation",
)
CONTENT_TYPES = (
    "Product/Company/Organization/Personal Websites",
    "Explanatory Articles",
    "News",
    "Blogs",
    "MISC",
    "Boilerplate Content",
    "Analytical Exposition",
    "Online Comments",
    "Reviews",
    "Books and Literature",
    "Conversational",
)


@dataclass
class QualityClassifier(LabelClassifier):
    """Label English documents High, Medium or Low with nvidia/quality-classifier-deberta."""

    label_field: str = "quality_pred"
    max_chars: int | None = 6000

    hub_id: ClassVar[str] = "nvidia/quality-classifier-deberta"
    most_tokens: ClassVar[int] = 1024
    usual_labels: ClassVar[tuple[Label, ...]] = ("High", "Medium", "Low")


@dataclass
class DomainClassifier(LabelClassifier):
    """Label English documents with one of 26 domains, such as Finance or Sports, with nvidia/domain-classifier."""

    label_field: str = "domain_pred"
    max_chars: int | None = 2000

    hub_id: ClassVar[str] = "nvidia/domain-classifier"
    most_tokens: ClassVar[int] = 512
    usual_labels: ClassVar[tuple[Label, ...]] = DOMAINS


@dataclass
class MultilingualDomainClassifier(LabelClassifier):
    """Label documents in 52 languages with the 26 domains, with nvidia/multilingual-domain-classifier."""

    label_field: str = "multilingual_domain_pred"
    max_chars: int | None = 2000

    hub_id: ClassVar[str] = "nvidia/multilingual-domain-classifier"
    most_tokens: ClassVar[int] = 512
    usual_labels: ClassVar[tuple[Label, ...]] = DOMAINS


@dataclass
class ContentTypeClassifier(LabelClassifier):
    """Label documents with one of 11 types, such as News or Reviews, with nvidia/content-type-classifier-deberta."""

    label_field: str = "content_pred"
    max_chars: int | None = 6000

    hub_id: ClassVar[str] = "nvidia/content-type-classifier-deberta"
    most_tokens: ClassVar[int] = 1024
    usual_labels: ClassVar[tuple[Label, ...]] = CONTENT_TYPES
